"""Other people's formats to `Event` and back: pure translation, one file per format."""
