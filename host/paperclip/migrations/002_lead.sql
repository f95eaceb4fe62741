-- Which of several Paperclip servers on this database serves memory.
CREATE TABLE IF NOT EXISTS plugin_memhost_d7b1543049.lead (
  one boolean PRIMARY KEY,
  holder text NOT NULL,
  until timestamptz NOT NULL
);
