-- Whether it is known if a company's memory is metered. Nothing of the company is taken in before.
ALTER TABLE plugin_memhost_d7b1543049.companies ADD COLUMN IF NOT EXISTS enrolled boolean NOT NULL DEFAULT false;
UPDATE plugin_memhost_d7b1543049.companies SET enrolled = true;
