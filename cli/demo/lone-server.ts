/** The subject of the demonstration without options: one server, which is killed and started again. */
import type { DemoLogin, DemoSubject } from './scenario.ts'
import type { DemoServer } from './server.ts'

const INTRODUCTION = [
  'A source counts 1, 2, 3 … A consumer has to handle each number exactly once and in order.',
  'The server between them is killed three times with kill -9. It promises that what is stored',
  'is not lost. The source cannot see what is stored: before a kill it pauses until all is.',
  '',
] as const

export class LoneServer implements DemoSubject {
  readonly introduction = INTRODUCTION
  readonly #server: DemoServer
  readonly #login: (server: DemoServer) => Promise<DemoLogin>

  constructor(server: DemoServer, login: (server: DemoServer) => Promise<DemoLogin>) {
    this.#server = server
    this.#login = login
  }

  get smonPort(): number {
    return this.#server.smonPort
  }

  login(): Promise<DemoLogin> {
    return this.#login(this.#server)
  }

  async start(): Promise<readonly string[]> {
    await this.#server.start()
    return [`the server is up, process ${this.#server.pid}, data in ${this.#server.directory}`]
  }

  async kill(): Promise<string> {
    const { pid } = this.#server
    await this.#server.kill()
    return String(pid)
  }

  async recover(): Promise<readonly string[]> {
    await this.#server.start()
    return [`the server is up again, process ${this.#server.pid}`]
  }

  async conclude(): Promise<readonly string[]> {
    return []
  }
}
