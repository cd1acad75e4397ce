"""Asking a language model behind any server that speaks OpenAI's chat protocol.

Answers can be kept on disk, so that a run can be repeated without the model; what was asked, what
was answered and what came of it can be logged, so that a run can be audited.
"""

from experiments.chat.answers import AnswerCache
from experiments.chat.audit import AuditLog, read_audit
from experiments.chat.client import Answer, Chat, ChatModel, Message

__all__ = ["Answer", "AnswerCache", "AuditLog", "Chat", "ChatModel", "Message", "read_audit"]
