/**
 * A broker in memory as qpidd routes QMF: queues, a topic and a direct exchange, its own part of the management (packages,
 * classes, schemas, agents), which says nothing where there is no reply-to. Over links without bytes; `run` delivers.
 */
import type { AmqpEvents, AmqpTransfer } from '../../../../../protocol/amqp/client.ts'
import type { AmqpDelivery } from '../../../../../protocol/amqp/session.ts'
import { decodeBody, encodeMessage } from '../../../../../protocol/qmf/messages.ts'
import type { QmfMessage, QmfValue, Schema, SchemaLookup } from '../../../../../protocol/qmf/types.ts'
import { keyText } from '../../../../../server/wings/qmf/discovery.ts'
import { plain } from '../console-peer.ts'
import { tableOf } from '../recorded.ts'

interface Attached {
  readonly brokerBank: number
  readonly agentBank: number
  readonly label: string
  readonly systemId: string
  readonly link: object
}

export class MemoryBroker {
  /** What came, by exchange and key: `qpid.management broker A`. */
  readonly seen: string[] = []
  readonly schemas = new Map<string, Schema>()
  readonly packages = new Set<string>()
  readonly agents: Attached[] = []
  /** Bodies to a key, in order. */
  readonly bodies: { readonly to: AmqpTransfer; readonly body: Uint8Array }[] = []
  /** Nothing is completed. */
  isStuck = false
  nextBank = 10
  readonly #queues = new Map<string, { link: object; deliver(delivery: AmqpDelivery): void }>()
  #bindings: { readonly queue: string; readonly exchange: string; readonly key: string }[] = []
  #work: (() => void)[] = []
  #sequence = 100

  readonly known: SchemaLookup = {
    schema: (key) => this.schemas.get(keyText(key)),
    method: () => undefined,
  }

  constructor() {
    const agent = tableOf('agent')
    this.packages.add(agent.key.packageName)
    this.schemas.set(keyText(agent.key), agent)
  }

  /** A connection; opened by the next `run`. */
  connect(events: AmqpEvents) {
    const link = {
      start: () => this.#later(() => events.opened({ serverProperties: new Map(), heartbeatSeconds: 0 })),
      push: (_bytes: Uint8Array) => {},
      tick: (_nowMs: number) => {},
      declareQueue: (queue: string) => {
        this.#queues.set(queue, { link, deliver: (delivery) => events.delivered(delivery) })
      },
      bind: (queue: string, exchange: string, key: string) => {
        this.#bindings.push({ queue, exchange, key })
        if (key.startsWith('console'))
          for (const { link: at } of this.agents) this.#toAgent(at, { op: 'x', sequence: 0 })
      },
      unbind: (queue: string, exchange: string, key: string) => {
        this.#bindings = this.#bindings.filter(
          (one) => one.queue !== queue || one.exchange !== exchange || one.key !== key,
        )
      },
      subscribe: () => {},
      transfer: (to: AmqpTransfer, body: Uint8Array) => this.#later(() => this.#routed(link, to, body)),
      sync: (done: () => void) => {
        if (!this.isStuck) this.#later(done)
      },
      close: () => this.drop(link),
    }
    return link
  }

  /** A connection is over, and with it its queues and its agent. */
  drop(link: object): void {
    for (const [name, queue] of this.#queues) if (queue.link === link) this.#queues.delete(name)
    this.#bindings = this.#bindings.filter(({ queue }) => this.#queues.has(queue))
    this.agents.splice(0, this.agents.length, ...this.agents.filter((agent) => agent.link !== link))
  }

  /** Until nothing is under way. */
  run(): void {
    for (let work = this.#work.shift(); work !== undefined; work = this.#work.shift()) work()
  }

  #later(work: () => void): void {
    this.#work.push(work)
  }

  #routed(link: object, to: AmqpTransfer, body: Uint8Array): void {
    this.bodies.push({ to, body })
    this.seen.push(`${to.exchange} ${to.routingKey} ${String.fromCharCode(body[3] ?? 0)}`)
    const isMine =
      to.exchange === 'qpid.management' && (to.routingKey === 'broker' || /^agent\.1\.0/.test(to.routingKey))
    if (!isMine) this.#route(to, body)
    else if (to.replyTo !== undefined && body.length <= 65_536) this.#managed(link, to.replyTo.routingKey, body)
  }

  #route({ exchange, routingKey, replyTo }: AmqpTransfer, body: Uint8Array): void {
    const matches = (key: string) => (exchange === 'amq.direct' ? key === routingKey : isMatch(key, routingKey))
    for (const binding of this.#bindings.filter((one) => one.exchange === exchange && matches(one.key))) {
      const delivery = { destination: '', exchange, routingKey, headers: new Map(), body, ...(replyTo && { replyTo }) }
      this.#queues.get(binding.queue)?.deliver(delivery)
    }
  }

  #tell(routingKey: string, ...messages: QmfMessage[]): void {
    for (const message of messages) {
      this.#later(() => this.#route({ exchange: 'amq.direct', routingKey }, encodeMessage(message, this.known)))
    }
  }

  #toAgent(at: object, message: QmfMessage): void {
    for (const [name, { link }] of this.#queues) if (link === at) this.#tell(name, message)
  }

  #managed(link: object, replyTo: string, body: Uint8Array): void {
    for (const message of decodeBody(body, this.known).messages) {
      const { sequence } = message
      const done: QmfMessage = { op: 'z', sequence, code: 0, text: 'OK' }
      if (message.op === 'B') this.#tell(replyTo, { op: 'b', sequence, brokerId: NO_ID })
      if (message.op === 'P') {
        this.#tell(
          replyTo,
          ...[...this.packages].map((packageName) => ({ op: 'p', sequence, packageName }) as const),
          done,
        )
      }
      if (message.op === 'Q') {
        const found = [...this.schemas.values()].filter(({ key }) => key.packageName === message.packageName)
        this.#tell(replyTo, ...found.map(({ kind, key }) => ({ op: 'q', sequence, kind, key }) as const), done)
      }
      if (message.op === 'S') {
        const schema = this.schemas.get(keyText(message.key))
        this.#tell(replyTo, schema ? { op: 's', sequence, schema } : { ...done, code: 1 })
      }
      if (message.op === 'p') this.packages.add(message.packageName)
      if (message.op === 'q' && !this.schemas.has(keyText(message.key))) {
        this.#tell(replyTo, { op: 'S', sequence: ++this.#sequence, key: message.key })
      }
      if (message.op === 's' && sequence <= this.#sequence)
        this.schemas.set(keyText(message.schema.key), message.schema)
      if (message.op === 'A') {
        const isFree = message.agentBank > 0 && this.agents.every(({ agentBank }) => agentBank !== message.agentBank)
        const agentBank = isFree ? message.agentBank : this.nextBank++
        const { label, systemId } = message
        this.agents.push({ brokerBank: 1, agentBank, label, systemId, link })
        this.#tell(replyTo, { op: 'a', sequence, brokerBank: 1, agentBank })
      }
      if (message.op === 'G') {
        const found = message.query.get('_class') === 'agent' ? this.agents : []
        this.#tell(replyTo, ...found.map((agent, i) => agentObject(agent, i, sequence)), done)
      }
    }
  }
}

const NO_ID = '00000000-0000-0000-0000-000000000000'

function agentObject(agent: Attached, at: number, sequence: number): QmfMessage {
  const schema = tableOf('agent')
  const given: Readonly<Record<string, QmfValue>> = { ...agent, link: '' }
  const header = { key: schema.key, sampled: 1n, created: 1n, deleted: 0n, id: `0-1-1-0-${900 + at}` }
  const properties = schema.properties.map(({ name, type }) => given[name] ?? plain(type))
  return { op: 'g', sequence, header, properties, statistics: [] }
}

/** `*`: one word; `#`: any number of them. */
function isMatch(pattern: string, key: string): boolean {
  const words = pattern.split('.').map((word) => {
    if (word === '#') return '(\\.[^.]+)*'
    return `\\.${word === '*' ? '[^.]+' : word}`
  })
  return new RegExp(`^${words.join('')}$`).test(`.${key}`)
}
