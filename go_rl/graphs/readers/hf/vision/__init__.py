"""Images: towers of blocks over their patches, and language models that read them."""
