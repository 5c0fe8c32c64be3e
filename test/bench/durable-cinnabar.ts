/** Cinnabar as a contender: the server with smon over TCP, in a process of its own. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { SERVER_PROGRAM } from '../support/program.ts'
import { ADMIN_PASSWORD } from './durable-consumer.ts'
import { WITHOUT_HISTORY } from './measured.ts'
import type { Contender } from './peers/contender.ts'
import type { Commits } from './processes/end.ts'
import { ServerUnderTest } from './processes/server-under-test.ts'

/** More than a value takes in a channel: nothing overflows, whoever is slower. */
const BYTES_PER_VALUE = 256

export function cinnabar(values: number, commits: Commits, { hasRecent = true, hasHistory = false } = {}): Contender {
  const window = commits.writeAll ? WIDE_WINDOW : DEFAULT_WINDOW
  return {
    name: hasHistory ? 'with a history' : hasRecent ? 'cinnabar' : 'without recent values',
    settings: `SQLite, synchronous full; OK when durable; window ${window.values} values, ${window.bytes >> 20} MiB`,
    values,
    async start(directory) {
      const port = await freePort()
      const smon = await freePort()
      const more = `[smon]\ntcp = "127.0.0.1:${smon}"\n${hasRecent ? '' : '[recent]\nmax_bytes = 0\n'}`
      const server = await launched({ directory, port, values, window, hasHistory, more })
      return {
        server,
        publisher: { end: 'smon-publisher', port: smon, values },
        consumer: { end: 'cinnabar-consumer', port, values, commits },
      }
    },
  }
}

/** A server with everything it keeps in `directory`. `more`: the end of its configuration. */
export function launched(setup: Setup): Promise<ServerUnderTest> {
  const { directory, port } = setup
  mkdirSync(directory, { recursive: true })
  const config = join(directory, 'cinnabar.toml')
  writeFileSync(config, toml(setup))
  return ServerUnderTest.start({
    args: [SERVER_PROGRAM, 'serve', '--config', config],
    env: { CINNABAR_ADMIN_PASSWORD: ADMIN_PASSWORD },
    port,
  })
}

interface Window {
  readonly values: number
  readonly bytes: number
}

const DEFAULT_WINDOW: Window = { values: 65_536, bytes: 8 << 20 }
/** Waiting for the disk must not be waiting for the window. */
const WIDE_WINDOW: Window = { values: 1 << 20, bytes: 128 << 20 }

export interface Setup {
  readonly directory: string
  readonly port: number
  readonly values: number
  readonly window?: Window
  /** Where it listens for gmetric; nowhere by default. */
  readonly gmetric?: string
  /** Whether it records its values, as a server does by itself. */
  readonly hasHistory?: boolean
  readonly more: string
}

function toml(setup: Setup): string {
  const { directory, port, values, window = DEFAULT_WINDOW, gmetric = '', hasHistory = false, more } = setup
  return `[producer]
name = "bench"
data_dir = ${JSON.stringify(join(directory, 'data'))}
[listen]
tcp = "127.0.0.1:${port}"
http = ""
[auth]
scram_iterations = 4096
[gmetric]
listen = "${gmetric}"
[channels]
max_bytes = ${Math.max(256 << 20, values * BYTES_PER_VALUE)}
window = ${window.values}
window_bytes = ${window.bytes}
[log]
level = "warn"
${hasHistory ? '' : WITHOUT_HISTORY}${more}`
}
