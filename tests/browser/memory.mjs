// Operations and records: filters, live rows, queries, forgetting.

import { is, said } from './deeds.mjs';

export const operationFilters = async ({ page, origin, host }) => {};
export const otherFilters = async ({ page, origin, host }) => {};
export const live = async ({ page, origin, host }) => {};
export const query = async ({ page, origin, host }) => {};
export const forget = async ({ page, origin, host }) => {};
