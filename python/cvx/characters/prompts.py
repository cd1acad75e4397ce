"""System prompts and tool descriptions for characters that look things up in their memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SYSTEM = """\
You are an agent in a simulation. You have access to memory tools:

Character Knowledge (discover who you are):
- query_self(): Your core identity and personality
- query_background(): Your personal history
- query_communication_style(): How you speak and interact

Situational Awareness:
- query_scene(): Understand where you are
- query_character(name): Learn about other agents

Memory:
- query_memory(question): Recall what has happened

Use these tools to understand yourself and your situation before acting."""
"""All that a character is told about itself: who it is, it finds out."""

CONSULTATION = """\
Before deciding your action, you MUST:
1. Check memories for relevant past experiences
2. Recall your history with present characters
3. Consider similar situations you've faced
4. State "no relevant memories" if none found"""
"""Put behind `SYSTEM` where every action has to rest on memories."""

REASONING = "Observation → Memory Retrieval → Integration → Goal Assessment → Decision"
"""The order in which a character thinks."""

JUSTIFICATION = """\
You are too uncertain to act without your memories.
required: query_memory()
required: justify_decision_with_memories()"""
"""What a character is told whose uncertainty is above the threshold."""

TOOLS: Mapping[str, str] = MappingProxyType(
    {
        "query_self": "Retrieve your core identity - who you are, your personality, background",
        "query_background": "Retrieve your personal history and background",
        "query_communication_style": "Learn how you communicate and interact with others",
        "query_scene": "Understand where you are and the current atmosphere",
        "query_character": "Learn about another agent in the simulation",
        "query_memory": "Search your memories of what has happened during the simulation",
        "form_memory": "Explicitly create memory",
        "reinforce_memory": "Strengthen important memories",
        "associate_memories": "Create explicit links",
        "recall_episodes": "Temporally ordered events",
        "recall_facts": "Confidence-scored knowledge",
        "recall_interactions": "Relationship history",
        "check_similar_situations": "Analogous past experiences",
    }
)
"""What each method of a ``Character`` is for, in the words for a model that may call it."""
