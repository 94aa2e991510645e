"""Files that a training run keeps in its folder, to go on where it stopped."""
