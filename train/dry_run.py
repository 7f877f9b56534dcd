def resolved(config):
    return config.model_dump(mode="json")
