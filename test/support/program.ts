/** The program `cinnabar`, compiled: what is started as a process is what users start. `built.ts` sees to it that it is there. */
export const PROGRAM = new URL('../../dist/cli/main.js', import.meta.url).pathname
