/** A server with a history and rules over `test.open` and `test.secret`, which always have the same value: who may read what is seen by what fires. */
import { expect } from 'vitest'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { type Config, defaultConfig } from '../../server/start/config.ts'
import { eventually } from './eventually.ts'
import { PublishingProducer } from './publisher.ts'
import type { Json } from './records.ts'
import type { Seat } from './seat.ts'

const EVER_MS = 36_500 * 86_400_000
const STEP_MS = 5_000

/** A file whose rules and templates read both metrics. */
export const READING_RULES = `groups:
  - name: g
    interval: 10s
    rules:
      - record: test:secret
        expr: test_secret
      - alert: Open
        expr: test_open > 0
        labels: { read: '{{ query "test_secret" | len }} {{ query "test_open" | len }}' }
        annotations: { read: '{{ range query "test_secret" }}{{ .Value }}{{ else }}nothing{{ end }}' }
      - alert: Secret
        expr: test_secret > 0
      - alert: Gone
        expr: absent(test_secret)
`

export class RuledProducer {
  #server: PublishingProducer

  private constructor(server: PublishingProducer) {
    this.#server = server
  }

  static async start(alerts: Partial<Config['alerts']>, more: Partial<Config> = {}): Promise<RuledProducer> {
    const { history, alerts: usual } = defaultConfig()
    const server = await PublishingProducer.start({
      config: {
        ...more,
        history: { ...history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['test.*', 'rules.*'] },
        alerts: { ...usual, builtin: false, ...alerts },
      },
    })
    return new RuledProducer(server)
  }

  get producer(): PublishingProducer['producer'] {
    return this.#server.producer
  }

  get root(): Seat {
    return this.#server.root
  }

  /** What the API of Prometheus answers. */
  async asked(token: string, path: string): Promise<Json> {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${this.#server.url}/api/v1/${path}`, { headers })
    return ((await answer.json()) as Json).data
  }

  async alertsOf(token: string): Promise<Json[]> {
    return (await this.asked(token, 'alerts')).alerts
  }

  /** Time goes on, and both metrics with it. */
  async passes(): Promise<void> {
    const { clock, push } = this.producer
    clock.advance(STEP_MS)
    for (const name of ['test.open', 'test.secret'])
      push.push(name, { type: BasicType.DOUBLE, value: 7 }, clock.microseconds())
    await this.producer.settle()
  }

  /** Time goes on until these alerts fire, and no others. Gives them. */
  async firing(token: string, ...names: readonly string[]): Promise<readonly Json[]> {
    let found: Json[] = []
    await eventually(async () => {
      await this.passes()
      found = await this.alertsOf(token)
      expect(found.map(({ labels }: Json) => labels.alertname).sort()).toEqual(names)
    })
    return found
  }

  /** The server is killed, and starts again. */
  async crash(): Promise<void> {
    this.#server = await PublishingProducer.of(await this.producer.crash())
  }

  async stop(): Promise<void> {
    await this.#server.stop()
  }
}
