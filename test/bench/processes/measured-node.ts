/**
 * A program of Node as a process of its own whose event loop is measured. BENCH_NODE_OPTIONS are further options of its Node:
 * `--cpu-prof` writes its profile when it is ended by SIGTERM.
 */
import { fileURLToPath } from 'node:url'
import { Child } from '../../support/child.ts'

const LOOP_DELAY = fileURLToPath(new URL('./loop-delay.mjs', import.meta.url))

export class MeasuredNode extends Child {
  /** `args`: the program and its arguments. `options`: further options of its Node. */
  constructor(
    args: readonly string[],
    {
      env,
      options = [],
    }: { readonly env?: Readonly<Record<string, string>> | undefined; readonly options?: readonly string[] } = {},
  ) {
    const more = (process.env['BENCH_NODE_OPTIONS'] ?? '').split(' ').filter((option) => option !== '')
    super(process.execPath, ['--import', LOOP_DELAY, ...options, ...more, ...args], { env, hasChannel: true })
  }

  /** From here on the delay of its event loop counts. */
  resetLoopDelay(): void {
    this.process.send('reset')
  }

  /** The 99th percentile since then, milliseconds. */
  async loopDelayP99Ms(): Promise<number> {
    return Number(await this.ask('read'))
  }
}
