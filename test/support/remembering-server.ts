/** A server in a process of its own whose history has the samples of a text, and a token with which programs read all of it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { PROGRAM } from './program.ts'
import { tokenFor } from './publisher.ts'
import { runToEnd } from './run-to-end.ts'
import { ServerProcess } from './server-process.ts'

const SECTIONS = '[history]\nkeep = "3650d"\nmetrics = ["prometheus.*"]\nresolution = "0"\n'

export class RememberingServer {
  readonly process: ServerProcess
  readonly url: string
  /** Reads everything of the tenant `default`. */
  readonly token: string

  private constructor(process: ServerProcess, token: string) {
    this.process = process
    this.url = `http://127.0.0.1:${process.httpPort}`
    this.token = token
  }

  /** `text`: OpenMetrics, each sample with its time. */
  static async start(text: string): Promise<RememberingServer> {
    const server = new ServerProcess(SECTIONS, { tcp: await freePort(), http: await freePort() })
    try {
      await server.start()
      const file = join(server.directory, 'dump')
      writeFileSync(file, text)
      const words = ['history', 'import', file, '--config', server.config]
      const { code, out } = await runToEnd(process.execPath, [PROGRAM, ...words], { cwd: server.directory })
      if (code !== 0) throw new Error(`the import ended with ${code}: ${out}`)
      const seat = await server.seat()
      const token = await tokenFor(seat, 'admin', 'COLLECT *')
      seat.peer.destroy()
      return new RememberingServer(server, token)
    } catch (error) {
      await server.remove()
      throw error
    }
  }

  get authorization(): string {
    return `Bearer ${this.token}`
  }

  /** What it answers itself. */
  async data(path: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
    const headers = { authorization: this.authorization }
    const answer = await fetch(`${this.url}/api/v1/${path}?${new URLSearchParams(parameters)}`, { headers })
    const { data } = (await answer.json()) as { data?: unknown }
    return data
  }

  async remove(): Promise<void> {
    await this.process.remove()
  }
}
