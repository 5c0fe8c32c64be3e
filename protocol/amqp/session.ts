/**
 * The session of a connection once it is attached: numbers commands, completes the broker's and hears of the completion of
 * ours. What a newcomer gets wrong: the broker goes on sending only while it is told which of its commands are done.
 */
import { type Command, decodeCommand, encodeCommand } from './commands.ts'
import { type ContentHeader, type Delivery, decodeDelivery, encodeHeader } from './content.ts'
import type { Control } from './controls.ts'
import type { Assembly } from './frames.ts'
import { detachReason, exceptionReason } from './reasons.ts'
import { includes, nextSequence, ReceivedCommands } from './sequence.ts'

/** What a session needs of its connection. */
export interface SessionLink {
  readonly name: string
  writeControl(control: Control): void
  writeCommand(method: Uint8Array, header?: Uint8Array, body?: Uint8Array): void
  delivered(message: Delivery): void
  /** The session is dead, and with it the connection. */
  ended(reason: string): void
}

export class Session {
  readonly #link: SessionLink
  readonly #received = new ReceivedCommands()
  #syncs: readonly { readonly id: number; readonly done: () => void }[] = []
  #nextCommand = 0
  #owesCompletion = false

  constructor(link: SessionLink) {
    this.#link = link
  }

  /** Throws ProtocolError (TOO_LONG) where a name does not fit into its field; nothing was sent then. */
  send(command: Command, content?: { readonly header: ContentHeader; readonly body: Uint8Array }): void {
    // qpidd completes a sync at once only if its bit is set too.
    const method = encodeCommand(command, command.name === 'execution.sync')
    const header = content && encodeHeader(content.header)
    this.#nextCommand = nextSequence(this.#nextCommand)
    this.#link.writeCommand(method, header, content?.body)
  }

  /** Calls back when the broker has completed everything sent so far. */
  sync(done: () => void): void {
    this.#syncs = [...this.#syncs, { id: this.#nextCommand, done }]
    this.send({ name: 'execution.sync' })
  }

  /** Controls of other classes, and those that only a client sends, are ignored. */
  controlled(control: Control): void {
    switch (control.name) {
      case 'session.command-point':
        this.#received.startAt(control.id ?? 0)
        break
      case 'session.completed':
        this.#completed(control)
        break
      case 'session.known-completed':
        this.#received.known(control.commands ?? [])
        break
      case 'session.flush':
        // What is completed is confirmed too; `expected` is asked of sessions that are resumed.
        if (control.completed || control.confirmed) this.#owesCompletion = true
        break
      case 'session.request-timeout':
        this.#link.writeControl({ name: 'session.timeout', seconds: 0 })
        break
      case 'session.detach':
        this.#link.writeControl({ name: 'session.detached', session: this.#link.name, code: 0 })
        this.#link.ended(detachReason(0))
        break
      case 'session.detached':
        this.#link.ended(detachReason(control.code))
        break
    }
  }

  commanded({ method, header, body }: Assembly): void {
    const { command } = decodeCommand(method)
    this.#received.record()
    this.#owesCompletion = true
    // Others (sync, result, accept, flow) want nothing but to be completed.
    if (command.name === 'execution.exception') this.#link.ended(exceptionReason(command))
    else if (command.name === 'message.transfer')
      this.#link.delivered(decodeDelivery(command.destination, header, body))
  }

  /** At the end of a push: tells what is completed, once for all that came and asked; the broker's window moves on. */
  settle(): void {
    if (!this.#owesCompletion) return
    this.#owesCompletion = false
    const { completed, asksForReply } = this.#received
    this.#link.writeControl({ name: 'session.completed', commands: completed, timelyReply: asksForReply })
  }

  #completed({ commands = [], timelyReply }: Extract<Control, { name: 'session.completed' }>): void {
    const done = this.#syncs.filter(({ id }) => includes(commands, id))
    this.#syncs = this.#syncs.filter((sync) => !done.includes(sync))
    if (timelyReply) this.#link.writeControl({ name: 'session.known-completed', commands })
    for (const sync of done) sync.done()
  }
}
