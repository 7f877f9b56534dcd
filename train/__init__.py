"""Fine-tunes a Hugging Face model on packed rows; run as `python -m train.run`."""
