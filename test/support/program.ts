/** The program `cinnabar` for tests that start it as a process. */
import { expectBuilt, SOURCES } from './built.ts'
import { BUNDLED } from './bundle.ts'

expectBuilt(SOURCES)

/** The command, as it was built. */
export const PROGRAM = new URL('../../dist/cli/main.js', import.meta.url).pathname

/** The command of servers that are started often: in tests the bundle, which vitest has made; as it was built if run by hand. */
export const SERVER_PROGRAM = process.env['VITEST'] === undefined ? PROGRAM : BUNDLED

/** Part of the last line that `cinnabar serve` prints when everything is open. */
export const READY = ' channels'

/** What it has printed until everything is open, or until it has ended. */
export async function untilReady(stdout: AsyncIterable<unknown>): Promise<string> {
  let shown = ''
  for await (const chunk of stdout) {
    shown += String(chunk)
    if (shown.includes(READY)) break
  }
  return shown
}
