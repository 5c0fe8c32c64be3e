// A short file that only the file beside it needs.
export const fragment = 1
