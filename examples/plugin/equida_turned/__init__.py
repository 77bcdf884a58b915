"""A plug-in of equida: a method, a data set, a validator and a backbone, one file each."""
