#!/usr/bin/env python3
"""Makes a database with Memori's own storage: its schema, and what its augmentation writes. Memori's cloud extracts, so
what it would have extracted is given here.

Usage: make.py FILE. With the file `-` it prints the database as SQL.
"""

import sqlite3
import sys
import types


class Unused(types.ModuleType):
    """In place of what computes embeddings, which is gigabytes."""

    def __getattr__(self, name):
        return None


sys.modules["memori.embeddings._api"] = Unused("memori.embeddings._api")

from memori import Memori  # noqa: E402
from memori.memory._struct import SemanticTriple  # noqa: E402


def triple(subject, predicate, thing):
    made = SemanticTriple()
    (made.subject_name, made.subject_type), made.predicate = subject, predicate
    made.object_name, made.object_type = thing
    return made


def fill(driver):
    ada, shop = driver.entity.create("user/ada"), driver.process.create("shop-agent")
    session = driver.session.create("7a0c3c5e-2f57-4b0c-9d6e-4f9f2a7d1c11", ada, shop)
    conversation = driver.conversation.create(session, 30)
    driver.conversation.message.create(conversation, "user", "text", "I drink green tea and moved to Bern.")
    driver.conversation.message.create(conversation, "assistant", "text", "Noted.")
    facts = ["Ada drinks green tea", "Ada lives in Bern"]
    driver.entity_fact.create(ada, facts, [[0.5, 0.25], [0.125, 1.0]], conversation)
    driver.entity_fact.create(ada, facts[:1], [[0.5, 0.25]], conversation)
    triples = [triple(("Ada", "person"), "lives in", ("Bern", "place")), triple(("Ada", "person"), "works with", ("Bob", "person"))]
    driver.knowledge_graph.create(ada, triples)
    driver.process_attribute.create(shop, ["Answers in German"])
    driver.conversation.update(conversation, "Ada told what she drinks and where she lives.")
    bob = driver.entity.create("bob")
    driver.entity_fact.create(bob, ["Bob prefers mail — not calls"], [[1.0, 0.0]])


def main(file):
    connection = sqlite3.connect(":memory:" if file == "-" else file)
    memori = Memori(conn=lambda: connection)
    printed, sys.stdout = sys.stdout, sys.stderr
    memori.config.storage.build()
    fill(memori.config.storage.driver)
    sys.stdout = printed
    connection.commit()
    if file == "-":
        print("\n".join(connection.iterdump()))


if __name__ == "__main__":
    main(sys.argv[1])
