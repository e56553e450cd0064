"""The files of jobs, in a directory or a bucket."""

from farm.stores.artifacts.directory import DirectoryArtifacts

__all__ = ["DirectoryArtifacts"]
