"""Compares a tuned model with its base on packed rows; run as `python -m eval.run`."""
