/**
 * The session of a connection once it is attached: numbers commands, completes the broker's commands and learns of the
 * completion of ours. The broker keeps sending only as long as it learns which of its commands are completed.
 */
import type { FieldTable } from './field-table.ts'
import type { Assembly } from './frames.ts'
import {
  type AmqpCommand,
  type AmqpControl,
  amqpCommandName,
  decodeCommand,
  decodeHeader,
  encodeCommand,
  encodeHeader,
  type MessageHeader,
  type ReplyTo,
  type SequenceRange,
} from './methods.ts'

/** A received message. */
export interface AmqpDelivery {
  /** The name of the subscription. */
  readonly destination: string
  readonly exchange: string
  readonly routingKey: string
  readonly correlationId?: string
  readonly replyTo?: ReplyTo
  readonly contentType?: string
  readonly appId?: string
  readonly headers: FieldTable
  /** The receiver may keep these bytes. */
  readonly body: Uint8Array
}

/** The parts of its connection that a session uses. */
export interface SessionLink {
  readonly name: string
  writeControl(control: AmqpControl): void
  writeCommand(method: Uint8Array, header?: Uint8Array, body?: Uint8Array): void
  delivered(delivery: AmqpDelivery): void
  /** Called when the session has ended, which ends the connection too. `refusal`: a command of ours was refused. */
  ended(reason: string, refusal?: AmqpRefusal): void
}

/** Why the peer refused a command [AMQP 0-10, execution.exception]. */
export interface AmqpRefusal {
  /** 403 is unauthorized-access. */
  readonly code: number
  readonly text: string
}

const detachCodes = ['normal', 'session busy', 'transport busy', 'not attached', 'unknown ids']
/** With more completed commands that the peer has not confirmed, the peer is asked for a confirmation. */
const CONFIRMATION_ABOVE = 1000
/** For a peer that never confirms, only the latest completions are reported. */
const MAX_UNCONFIRMED = 65_536

export class AmqpSession {
  readonly #link: SessionLink
  readonly #received = new ReceivedCommands()
  #syncs: readonly { readonly id: number; readonly done: () => void }[] = []
  #nextCommand = 0
  #owesCompletion = false

  constructor(link: SessionLink) {
    this.#link = link
  }

  /** Throws ProtocolError (TOO_LONG) if a name does not fit into its field; nothing is sent then. */
  send(command: AmqpCommand, content?: { readonly header: MessageHeader; readonly body: Uint8Array }): void {
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

  /** Ignores controls of other classes, and those that only a client sends. */
  receiveControl(control: AmqpControl): void {
    switch (control.name) {
      case 'session.command-point':
        this.#received.startAt(control.id ?? 0)
        break
      case 'session.completed':
        this.#completed(control)
        break
      case 'session.known-completed':
        this.#received.confirm(control.commands ?? [])
        break
      case 'session.flush':
        // Everything completed is confirmed too; only resumed sessions are asked for `expected`.
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

  /** Other commands than these two (sync, result, accept, flow) only need to be completed. */
  receiveCommand({ method, header, body }: Assembly): void {
    const { command } = decodeCommand(method)
    this.#received.record()
    this.#owesCompletion = true
    if (command.name === 'execution.exception') {
      const { code = 0, text = '' } = command
      this.#link.ended(exceptionReason(command), { code, text })
    } else if (command.name === 'message.transfer') {
      this.#link.delivered(deliveryOf(command.destination, header, body))
    }
  }

  /** Reports, at the end of a push, all completed commands at once, which lets the broker's window move on. */
  reportCompletions(): void {
    if (!this.#owesCompletion) return
    this.#owesCompletion = false
    const { completed, needsConfirmation } = this.#received
    this.#link.writeControl({ name: 'session.completed', commands: completed, timelyReply: needsConfirmation })
  }

  #completed({ commands = [], timelyReply }: Extract<AmqpControl, { name: 'session.completed' }>): void {
    const done = this.#syncs.filter(({ id }) => includes(commands, id))
    this.#syncs = this.#syncs.filter((sync) => !done.includes(sync))
    if (timelyReply) this.#link.writeControl({ name: 'session.known-completed', commands })
    for (const sync of done) sync.done()
  }
}

/** The numbers of the peer's commands, each of which is completed as soon as it has arrived. */
export class ReceivedCommands {
  #next = 0
  /** How many commands before `#next` the peer has not confirmed. */
  #unconfirmed = 0

  /** Sets the number of the next command. */
  startAt(id: number): void {
    this.#next = id
    this.#unconfirmed = 0
  }

  record(): void {
    this.#next = nextSequence(this.#next)
    this.#unconfirmed = Math.min(this.#unconfirmed + 1, MAX_UNCONFIRMED)
  }

  /** The commands for session.completed. */
  get completed(): readonly SequenceRange[] {
    if (this.#unconfirmed === 0) return []
    return [{ first: (this.#next - this.#unconfirmed) >>> 0, last: (this.#next - 1) >>> 0 }]
  }

  get needsConfirmation(): boolean {
    return this.#unconfirmed > CONFIRMATION_ABOVE
  }

  /** The peer knows that these are completed, and with them all before. */
  confirm(ranges: readonly SequenceRange[]): void {
    for (const { last } of ranges) {
      const left = distance(last, this.#next) - 1
      if (left >= 0 && left < this.#unconfirmed) this.#unconfirmed = left
    }
  }
}

/**
 * Command numbers wrap at 2^32, so a range may go from 0xfffffffe to 1: they are compared by distance, never by size.
 */
export function nextSequence(id: number): number {
  return (id + 1) >>> 0
}

export function includes(ranges: readonly SequenceRange[], id: number): boolean {
  return ranges.some(({ first, last }) => distance(first, id) <= distance(first, last))
}

function distance(from: number, to: number): number {
  return (to - from) >>> 0
}

/** Throws ProtocolError. */
export function deliveryOf(
  destination = '',
  header: Uint8Array = new Uint8Array(0),
  body: Uint8Array = new Uint8Array(0),
): AmqpDelivery {
  const { delivery, message } = decodeHeader(header)
  const { correlationId, replyTo, contentType, appId, headers = new Map() } = message
  return {
    destination,
    exchange: delivery.exchange ?? '',
    routingKey: delivery.routingKey ?? '',
    ...(correlationId !== undefined && { correlationId }),
    ...(replyTo && { replyTo }),
    ...(contentType !== undefined && { contentType }),
    ...(appId !== undefined && { appId }),
    headers,
    body,
  }
}

function detachReason(code = 0): string {
  return `the server detached the session (${code}: ${detachCodes[code] ?? 'unknown'})`
}

function exceptionReason(exception: Extract<AmqpCommand, { name: 'execution.exception' }>): string {
  const { code, classCode = 0, commandCode = 0, text } = exception
  const name = amqpCommandName(classCode, commandCode) ?? 'a command'
  const reason = `the server refused ${name} and ended the session (${code ?? 'no code'})`
  return text ? `${reason}: ${text}` : reason
}
