"""What there is to analyse, wherever it lies, as a `Bundle` of streams that are read in bounded memory."""

from bot.archives.budget import PIECE, Budget, Limits, UnreadableError
from bot.archives.opening import Opened, open_bundle

__all__ = ["PIECE", "Budget", "Limits", "Opened", "UnreadableError", "open_bundle"]
