"""The model zoo: networks that the package can write or trace itself."""
