/** The program `cinnabar` for tests that start it as a process. */
import { expectBuilt } from './built.ts'

expectBuilt(['auth', 'cli', 'client', 'protocol', 'server', 'storage'])

export const PROGRAM = new URL('../../dist/cli/main.js', import.meta.url).pathname

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
