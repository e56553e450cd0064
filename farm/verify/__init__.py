"""The proof that a farm which runs does what its pool promises, with agents of the farm's own."""

from farm.verify.stage import VERIFY
from farm.verify.verifier import Verification, Verifier

__all__ = ["VERIFY", "Verification", "Verifier"]
