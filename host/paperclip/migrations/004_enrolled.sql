-- Whether the memory of a company was asked if it is metered. Before that nothing of the company is taken in.
ALTER TABLE plugin_memhost_d7b1543049.companies ADD COLUMN IF NOT EXISTS enrolled boolean NOT NULL DEFAULT false;
UPDATE plugin_memhost_d7b1543049.companies SET enrolled = true;
