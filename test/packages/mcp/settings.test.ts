/** The settings that docs/mcp.md and `cinnabar mcp` show for common programs start what they should. */
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCli } from '../../cli/fake-cli.ts'
import { pages } from '../../docs/page.ts'
import { compiled } from '../../support/compiled.ts'
import { AgentWorld, connected } from './agent.ts'

interface ServerSettings {
  readonly type?: 'stdio' | 'http'
  readonly command?: string
  readonly args?: readonly string[]
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
}

const page = pages().find(({ path }) => path === 'docs/mcp.md')
const blocks = (page?.blocks ?? []).filter(({ language }) => language === 'json')
const settings: readonly (readonly [string, Readonly<Record<string, ServerSettings>>])[] = blocks.map(({ lines }) => {
  return Object.entries(JSON.parse(lines.join('\n')))[0] as [string, Record<string, ServerSettings>]
})

const world = new AgentWorld()
beforeAll(async () => {
  await world.start()
  await world.user('agent', 'consumer')
})
afterAll(() => world.remove())

/** Starts it as a program would, with the server and the token of this test in place of those that are shown. */
async function toolsOf({ command, args = [] }: ServerSettings): Promise<number> {
  expect([command, args[0]]).toEqual(['npx', 'cinnabar-mcp'])
  const shown = args.slice(1).map((word) => {
    if (word === 'tcp://127.0.0.1:7650') return world.url
    return word.endsWith('/agent.token') ? world.tokenFile('agent') : word
  })
  const program = compiled('packages/mcp/cinnabar-mcp.ts')
  const transport = new StdioClientTransport({ command: process.execPath, args: [program, ...shown], stderr: 'ignore' })
  const client = await connected(transport)
  const { tools } = await client.listTools()
  const reply = await client.callTool({ name: 'metrics_read', arguments: { metric: 'host.load.one' } })
  expect(reply.isError).not.toBe(true)
  await client.close()
  return tools.length
}

it('those of programs that start it', async () => {
  const local = settings.flatMap(([key, servers]) => Object.values(servers).map((server) => [key, server] as const))
  const started = local.filter(([, { command }]) => command !== undefined)
  expect(started.map(([key, { type }]) => [key, type])).toEqual([
    ['mcpServers', undefined],
    ['servers', 'stdio'],
  ])
  for (const [, server] of started) expect(await toolsOf(server)).toBeGreaterThan(5)
})

it('those of programs that ask over HTTP', () => {
  const remote = settings.flatMap(([, servers]) => Object.values(servers)).filter(({ url }) => url !== undefined)
  expect(remote).toEqual([
    {
      type: 'http',
      url: 'http://127.0.0.1:7660/mcp',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Claude Code puts the variable in its place.
      headers: { Authorization: 'Bearer ${CINNABAR_TOKEN}' },
    },
  ])
})

it('those that `cinnabar mcp` prints', async () => {
  const { code, out } = await runCli(['mcp'])
  const text = out.join('\n')
  const [shown = ''] = /^ {2}\{\n[\s\S]*?^ {2}\}$/m.exec(text) ?? []
  const { mcpServers } = JSON.parse(shown) as { mcpServers: Record<string, ServerSettings> }
  expect(code).toBe(0)
  expect(await toolsOf(mcpServers['cinnabar'] ?? {})).toBeGreaterThan(5)
  expect(text).toContain('npm pack ./packages/mcp')
})
