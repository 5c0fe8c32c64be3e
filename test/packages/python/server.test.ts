/** The Python library and the server, over TCP and TLS. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Authority } from '../../support/certificates.ts'
import { freePort } from '../../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { missing, unittest } from './python.ts'

const HISTORY = '[history]\nkeep = "30d"\ninterval = "1s"\nmetrics = ["host.load.*"]\n'

let server: ServerProcess
let environment: Record<string, string>

beforeAll(async () => {
  if (missing !== undefined) return
  const feed = await freePort()
  const authority = await Authority.make()
  const { cert, key } = await authority.server()
  server = new ServerProcess(
    `[gmetric]\nlisten = "127.0.0.1:${feed}"\n[tls]\ncert = "cert.pem"\nkey = "key.pem"\n${HISTORY}`,
  )
  const file = (name: string, text: string): string => {
    const path = join(server.directory, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  file('cert.pem', cert)
  file('key.pem', key)
  const authorities = file('authority.pem', authority.cert)
  const password = file('password', PASSWORD)
  await server.start()
  environment = {
    CINNABAR_URL: `tcp://127.0.0.1:${server.tcpPort}`,
    CINNABAR_TLS_URL: `tls://localhost:${server.tlsPort}`,
    CINNABAR_AUTHORITIES: authorities,
    CINNABAR_PASSWORD_FILE: password,
    CINNABAR_FEED_PORT: String(feed),
  }
})
afterAll(() => server?.remove())

// Skipped only where Python is missing; the message of python.ts says how to install it.
it.skipIf(missing !== undefined)('work together', async () => {
  const { code, out } = await unittest('live', environment)
  expect(out).toMatch(/^Ran \d{2,} tests in .*\n\nOK\b/m)
  expect(code, out).toBe(0)
})
