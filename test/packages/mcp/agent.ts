/** A server with users and tokens, and agents that ask it through the program `cinnabar-mcp`, with the client of the SDK. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { type Arguments, type Consumer, connect, newToken } from '../../../client/index.ts'
import { Child } from '../../support/child.ts'
import { compiled } from '../../support/compiled.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'

export interface ToolReply {
  /** The structured content; undefined if the tool has failed. */
  readonly answer: Readonly<Record<string, unknown>> | undefined
  /** The text of the content. */
  readonly text: string
}

/** A client of the SDK and what it has been answered. */
export class Agent {
  readonly client: Client
  readonly #end: () => Promise<void>

  constructor(client: Client, end: () => Promise<void> = async () => {}) {
    this.client = client
    this.#end = end
  }

  async call(name: string, args: Readonly<Record<string, unknown>> = {}): Promise<ToolReply> {
    const reply = (await this.client.callTool({ name, arguments: args })) as CallToolResult
    const [content] = reply.content
    const text = content?.type === 'text' ? content.text : ''
    return { answer: reply.isError ? undefined : reply.structuredContent, text }
  }

  /** The elements of the list of an answer. Throws if the tool fails. */
  async rows(name: string, list: string, args?: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>[]> {
    const { answer, text } = await this.call(name, args)
    if (answer === undefined) throw new Error(text)
    return answer[list] as Record<string, unknown>[]
  }

  async close(): Promise<void> {
    await this.client.close()
    await this.#end()
  }
}

export class AgentWorld {
  readonly server: ServerProcess
  #admin: Consumer | undefined
  readonly #children = new Set<Child>()

  /** `tcp`: a port that the server has again after a restart. */
  constructor(toml = '', { tcp = 0 } = {}) {
    this.server = new ServerProcess(toml, { tcp })
  }

  get url(): string {
    return `tcp://127.0.0.1:${this.server.tcpPort}`
  }

  get admin(): Consumer {
    if (this.#admin === undefined) throw new Error('the server was not started')
    return this.#admin
  }

  async start(): Promise<void> {
    await this.server.start()
    this.#admin = await connect(this.url, { identity: 'admin', password: PASSWORD }, { durable: false })
  }

  /** Runs a control as admin. Throws if it does not succeed. */
  async run(control: string, args: Arguments): Promise<unknown> {
    const { plain } = await this.admin.execute(control, args)
    const { outcome, detail, value } = Object(plain) as Record<string, unknown>
    if (outcome !== 'ok') throw new Error(`${control}: ${outcome}: ${detail}`)
    return value
  }

  /** Adds a user with a token; gives the token, which is also in the file of that name. */
  async user(name: string, role: string, scope?: string): Promise<string> {
    await this.run('user.add', { user: name, role, password: PASSWORD })
    return this.token(name, name, scope)
  }

  async token(user: string, file: string, scope?: string): Promise<string> {
    const { token, hash } = await newToken()
    await this.run('token.add', { user, hash, ...(scope !== undefined && { scope }) })
    writeFileSync(this.tokenFile(file), `${token}\n`, { mode: 0o600 })
    return token
  }

  tokenFile(name: string): string {
    return join(this.server.directory, `${name}.token`)
  }

  /** A client that starts the program itself, as most do. */
  async overStdio(user: string, options: readonly string[] = []): Promise<Agent> {
    const args = [
      compiled('packages/mcp/cinnabar-mcp.ts'),
      '--url',
      this.url,
      '--token-file',
      this.tokenFile(user),
      ...options,
    ]
    const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'pipe' })
    // It ends with the client, and what it notes has to be read.
    transport.stderr?.on('data', () => {})
    return new Agent(await connected(transport))
  }

  /** Starts the program with `--listen`; gives it and its address. */
  async listening(options: readonly string[] = []): Promise<{ readonly child: Child; readonly url: string }> {
    const args = ['--url', this.url, '--listen', '127.0.0.1:0', ...options]
    const child = new Child(process.execPath, [compiled('packages/mcp/cinnabar-mcp.ts'), ...args])
    this.#children.add(child)
    const isUp = await child.hasPrinted('/mcp,', 'errors')
    const [, url = ''] = /listens at (\S+),/.exec(child.errors) ?? []
    if (!isUp) throw new Error(`cinnabar-mcp did not listen: ${child.errors}`)
    return { child, url }
  }

  async overHttp(url: string, token: string): Promise<Agent> {
    const headers = { authorization: `Bearer ${token}` }
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    return new Agent(await connected(transport as Transport), () => transport.terminateSession().catch(() => {}))
  }

  async remove(): Promise<void> {
    for (const child of this.#children) await child.end('SIGTERM')
    await this.#admin?.close()
    await this.server.remove()
  }
}

export async function connected(transport: Transport): Promise<Client> {
  const client = new Client({ name: 'test-agent', version: '1.2.3' })
  await client.connect(transport)
  return client
}
