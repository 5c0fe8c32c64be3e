// A folder that has no place in the order of the server.
export const thing = 1
