"""Methods: source cross-entropy plus losses or alignment plus their own heads; one file each."""
