/** A real SMTP server on a free port of loopback, for tests. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'

/** A mail that has come whole: its text, with its head. Returns what the server says to it; undefined if it takes it. */
type TakeMail = (text: string, session: SMTPServerSession) => Error | undefined

export class MailServer {
  readonly port: number
  readonly #server: SMTPServer

  private constructor(server: SMTPServer, port: number) {
    this.#server = server
    this.port = port
  }

  static async start(take: TakeMail, options: SMTPServerOptions = {}): Promise<MailServer> {
    const server = new SMTPServer({
      authOptional: true,
      logger: false,
      onData(stream, session, done) {
        const parts: Buffer[] = []
        stream.on('data', (part: Buffer) => parts.push(part))
        stream.on('end', () => done(take(Buffer.concat(parts).toString(), session)))
      },
      ...options,
    })
    server.on('error', () => {})
    const listening = server.listen(0, '127.0.0.1')
    await once(listening, 'listening')
    return new MailServer(server, (listening.address() as AddressInfo).port)
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
