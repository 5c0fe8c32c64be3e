// A part that nobody has planned.
export const annex = 1
