/** The program `cinnabar` for tests that start it as a process. */
import { expectBuilt } from './built.ts'

expectBuilt(['auth', 'cli', 'client', 'protocol', 'server', 'storage'])

export const PROGRAM = new URL('../../dist/cli/main.js', import.meta.url).pathname
