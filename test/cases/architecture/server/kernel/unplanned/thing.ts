// A folder that has no place in the order of the kernel.
export const thing = 1
