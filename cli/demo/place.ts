/** What is between the sources and the consumer of a demonstration, and is killed: a server, or a cluster (cluster.ts). */
import type { Credentials } from '../../client/index.ts'
import type { DemoServer } from './server.ts'

export interface DemoPlace {
  /** In the sentences that are printed. */
  readonly name: string
  /** Where a source connects. */
  readonly smonPort: number
  /** Rejects with Failure if a process of it ends by itself. */
  readonly failed: Promise<never>
  login(): Promise<DemoLogin>
  /** Starts it; what has happened, line by line. Rejects with Failure. */
  start(): Promise<readonly string[]>
  /** Kills the process that serves; which one it was. */
  kill(): Promise<string>
  /** Resolves when it serves again; what has happened. Rejects with Failure. */
  recover(): Promise<readonly string[]>
  /** Kills all processes and deletes everything they have written. */
  remove(): Promise<void>
}

export interface DemoLogin {
  readonly url: string | readonly string[]
  readonly credentials: Credentials
}

export type LogIn = (server: DemoServer) => Promise<DemoLogin>

export class SingleServer implements DemoPlace {
  readonly name: string
  readonly #server: DemoServer
  readonly #logIn: LogIn

  constructor(server: DemoServer, logIn: LogIn, name = server.name) {
    this.name = name
    this.#server = server
    this.#logIn = logIn
  }

  get smonPort(): number {
    return this.#server.smonPort
  }

  get failed(): Promise<never> {
    return this.#server.failed
  }

  login(): Promise<DemoLogin> {
    return this.#logIn(this.#server)
  }

  async start(): Promise<readonly string[]> {
    await this.#server.start()
    return [`${this.name} is up, process ${this.#server.pid}, data in ${this.#server.directory}`]
  }

  async kill(): Promise<string> {
    const { pid } = this.#server
    await this.#server.kill()
    return String(pid)
  }

  async recover(): Promise<readonly string[]> {
    await this.#server.start()
    return [`${this.name} is up again, process ${this.#server.pid}`]
  }

  remove(): Promise<void> {
    return this.#server.remove()
  }
}
