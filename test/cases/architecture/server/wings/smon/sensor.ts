export const sensor = 1
