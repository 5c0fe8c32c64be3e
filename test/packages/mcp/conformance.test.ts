/**
 * The server scenarios of `@modelcontextprotocol/conformance`. It has no token, so requests pass a proxy that adds one and changes
 * nothing else. Scenarios that need tools, prompts or resources of a test server do not apply; `does-not-apply.yml` lists them with the
 * reason, and the program fails as well if one of them passes.
 */
import { createServer, request as forward, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runToEnd } from '../../support/run-to-end.ts'
import { AgentWorld } from './agent.ts'

const PROGRAM = new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url)
  .pathname
const DOES_NOT_APPLY = new URL('does-not-apply.yml', import.meta.url).pathname

/** docs/mcp.md names them. */
const APPLIES = [
  ...['dns-rebinding-protection', 'ping', 'server-initialize', 'server-sse-multiple-streams', 'tools-call-error'],
  ...['tools-call-simple-text', 'tools-list'],
]

const world = new AgentWorld()
let proxy: Server

/** `Host` and `Origin` that name the proxy name what is behind it afterwards; all others stay. */
function withToken(token: string, to: string): Server {
  const { hostname, port, host } = new URL(to)
  return createServer((incoming, outgoing) => {
    const own = `localhost:${(proxy.address() as AddressInfo).port}`
    const named = (text: string | undefined): string | undefined => text?.replace(own, host)
    const { headers, method, url } = incoming
    const passed = {
      ...headers,
      authorization: `Bearer ${token}`,
      host: named(headers.host),
      ...(headers.origin && { origin: named(headers.origin) }),
    }
    const asked = forward({ hostname, port, path: url, method, headers: passed }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    outgoing.once('close', () => asked.destroy())
    asked.once('error', () => outgoing.destroy())
    incoming.pipe(asked)
  })
}

beforeAll(async () => {
  await world.start()
  const token = await world.user('conformance', 'consumer')
  const { url } = await world.listening()
  proxy = withToken(token, url)
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  proxy?.closeAllConnections()
  proxy?.close()
  await world.remove()
})

it('passes each that applies, and each that does not apply fails', async () => {
  const url = `http://localhost:${(proxy.address() as AddressInfo).port}/mcp`
  const args = [PROGRAM, 'server', '--url', url, '--suite', 'all', '--expected-failures', DOES_NOT_APPLY]
  const { code, out } = await runToEnd(process.execPath, args, { cwd: world.server.directory })
  expect(code, out).toBe(0)
  const passed = [...out.matchAll(/^.*✓ ([\w-]+): (\d+) passed, 0 failed/gm)].filter(([, , count]) => Number(count) > 0)
  expect(passed.map(([, scenario]) => scenario).sort()).toEqual(APPLIES)
})
