/** `alert.silence`, `alert.acknowledge`, `alert.unsilence`, and `notify.test`. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Control, failed, ok } from '../../kit/controls.ts'
import type { Reader } from '../../kit/peer.ts'
import { type Clock, StatusError } from '../../kit/running.ts'
import { notifyDestination } from './destination.ts'
import { MAX_MATCHERS_TEXT, matcherTexts } from './matchers.ts'
import { testNotification } from './notification.ts'
import type { Notifiers } from './notifiers.ts'
import type { Silences } from './silences.ts'

const { STRING, UINT64 } = BasicType
const SECOND_MS = 1_000
/** A year. */
const MAX_SECONDS = 366 * 86_400
const MAX_COMMENT = 1_000

export interface AlertControls {
  readonly silences: Silences
  readonly clock: Pick<Clock, 'wallMs' | 'setTimeout' | 'clear'>
  readonly notifiers: Pick<Notifiers, 'lookAgain' | 'find'>
  /** How many alerts fire that somebody may read and that match all of these texts. */
  readonly firingCount: (reader: Reader, matchers: readonly string[]) => number | Promise<number>
  /** Settles when everything that was changed is stored. */
  readonly stored: () => Promise<void>
}

const PARAMETERS: Control['parameters'] = [
  {
    name: 'matchers',
    type: STRING,
    maxLength: MAX_MATCHERS_TEXT,
    description: 'Which alerts, by matchers as Alertmanager has them, each on a line of its own: severity="page".',
  },
  { name: 'seconds', type: UINT64, description: 'For how long.' },
  { name: 'comment', type: STRING, optional: true, description: 'Why, for the others.' },
]

export function silencing(
  name: 'alert.silence' | 'alert.acknowledge',
  { silences, clock, notifiers, firingCount, stored }: AlertControls,
): Control {
  const kind = name === 'alert.silence' ? 'silence' : 'acknowledgement'
  return {
    name,
    description:
      kind === 'silence'
        ? 'Nobody is told of alerts for a while.'
        : 'Somebody takes care of alerts that fire: nobody is told of them again. What begins to fire later is told.',
    parameters: PARAMETERS,
    prepare(args, { identity, credential }) {
      const matchers = matcherTexts(String(args.get('matchers')))
      const seconds = Number(args.get('seconds'))
      if (seconds < 1 || seconds > MAX_SECONDS)
        throw new StatusError('INVALID_ARGUMENT', `\`seconds\` has to be from 1 to ${MAX_SECONDS}`)
      const comment = String(args.get('comment') ?? '')
      if (comment.length > MAX_COMMENT)
        throw new StatusError('INVALID_ARGUMENT', `\`comment\` has at most ${MAX_COMMENT} characters`)
      return async () => {
        const reader = { ...identity, scope: credential.scope }
        const firing = await firingCount(reader, matchers)
        // It is of nothing that begins to fire later.
        if (kind === 'acknowledgement' && firing === 0)
          return failed('no alert fires that matches: nothing is acknowledged')
        const begins = clock.wallMs()
        const row = silences.add({
          tenant: identity.tenant,
          kind,
          matchers: JSON.stringify(matchers),
          begins,
          ends: begins + seconds * SECOND_MS,
          author: identity.name,
          comment,
        })
        if (row === undefined) return failed('the tenant has as many silences as it may have: end some')
        notifiers.lookAgain()
        await stored()
        return ok(`${kind} ${row.id}: it matches ${firingText(firing)} now`, { type: STRING, value: row.id })
      }
    },
  }
}

function firingText(count: number): string {
  if (count === 0) return 'no alert that fires'
  return count === 1 ? '1 alert that fires' : `${count} alerts that fire`
}

export function unsilencing({ silences, clock, notifiers, stored }: AlertControls): Control {
  return {
    name: 'alert.unsilence',
    description: 'A silence, or an acknowledgement, ends.',
    parameters: [{ name: 'id', type: STRING, description: 'Its id, as `producer.silences` has it.' }],
    prepare(args, { identity }) {
      const id = String(args.get('id'))
      return async () => {
        if (!silences.end(identity.tenant, id, clock.wallMs())) return failed(`there is no silence ${id}`)
        notifiers.lookAgain()
        await stored()
        return ok(`ended ${id}`)
      }
    },
  }
}

export function notifyTest({ notifiers, clock }: AlertControls): Control {
  return {
    name: 'notify.test',
    description: 'Sends a marked test through a notifier, and gives the answer of the receiver.',
    maxRunning: 2,
    parameters: [{ name: 'name', type: STRING, description: 'The name of the notifier.' }],
    prepare(args, { identity }) {
      const name = String(args.get('name'))
      const notifier = notifiers.find(identity.tenant, name)
      if (notifier === undefined) throw new StatusError('INVALID_ARGUMENT', `there is no notifier ${name}`)
      return async () => {
        if (notifier.isStopped) return failed(notifier.problem)
        const destination = notifyDestination(notifier.table, clock)
        try {
          const { verdict, detail } = await destination.send(testNotification(clock.wallMs()))
          const said = `the receiver answered ${detail}`
          return verdict === 'taken' ? ok(said) : failed(said)
        } catch (error) {
          return failed((error as Error).message)
        } finally {
          destination.close()
        }
      }
    },
  }
}
