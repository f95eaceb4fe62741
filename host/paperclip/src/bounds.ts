// How much the pages' lists hold, for the worker that cuts them and the pages that say so.

/** Things that were not taken in. */
export const TROUBLES = 50;
/** Recalls of a task. */
export const USED = 20;
