/** `history.drop`: what is remembered of a metric, or of a tenant, goes. `history.import`: samples come from a text. */
import { createHash } from 'node:crypto'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { HistoryMatcher } from '../../../storage/history/store.ts'
import { type Control, type ControlArguments, failed, ok } from '../../kit/controls.ts'
import type { Kit } from '../../kit/kit.ts'
import { ADMIN_ROLE, maySee } from '../../kit/metrics.ts'
import { StatusError } from '../../kit/running.ts'
import { type ImportCounts, type ImportedText, SERVER } from './messages.ts'
import { ownerOf } from './readable.ts'
import { labelMatcher, matcherOf } from './select.ts'

export interface DropServices {
  readonly view: Pick<Kit['peer']['view'], 'tenants'>
  /** Why nothing can be dropped now; undefined if it can. */
  readonly problem: () => string | undefined
  /** Resolves to how many series match. Rejects with an error for people. */
  readonly drop: (tenants: readonly string[], matchers: readonly HistoryMatcher[]) => Promise<number>
}

type Identity = Parameters<Control['prepare']>[1]['identity']

export function historyDrop({ view, problem, drop }: DropServices): Control {
  return {
    name: 'history.drop',
    description: 'Drops what is remembered of a metric up to now, or everything that is remembered of a tenant.',
    parameters: [
      {
        name: 'metric',
        type: BasicType.STRING,
        optional: true,
        description: 'The name of a metric, here or in Prometheus, or a pattern; without it everything of `tenant`.',
      },
      {
        name: 'labels',
        type: BasicType.STRING,
        optional: true,
        description: 'Only series with these texts of labels, or patterns: name=text, each on a line of its own.',
      },
      {
        name: 'tenant',
        type: BasicType.STRING,
        optional: true,
        description: 'Whose; without it your own tenant, and for an admin also what belongs to none.',
      },
    ],
    prepare(args, { identity }) {
      const matchers = matchersOf(args)
      const tenants = tenantsOf(args, identity)
      const why = problem()
      if (why !== undefined) throw new StatusError('BUSY', why)
      return async () => {
        try {
          const series = await drop(tenants, matchers)
          if (series === 0) return ok('nothing is remembered that matches: nothing was dropped')
          const what = `what was remembered of ${series} series is dropped`
          return ok(`${what}; the bytes are free when the files are merged next`)
        } catch (error) {
          return failed((error as Error).message)
        }
      }
    },
  }

  function tenantsOf(args: ControlArguments, identity: Identity): string[] {
    if (args.has('tenant')) return [tenantOf(view, args, identity)]
    return [identity.tenant, SERVER].filter((tenant) => mayChange(identity, tenant))
  }
}

/** As much as a frame from a consumer may have with the rest of the command. */
const MAX_TEXT_BYTES = 512 << 10

export interface ImportServices {
  readonly view: Pick<Kit['peer']['view'], 'tenants'>
  /** Why nothing can be imported now; undefined if it can. */
  readonly problem: () => string | undefined
  /** Rejects with an error for people. */
  readonly import: (text: ImportedText) => Promise<ImportCounts | undefined>
}

export function historyImport({ view, problem, import: take }: ImportServices): Control {
  return {
    name: 'history.import',
    description:
      'Stores the samples of a text in the history, at their own times. The same text again changes nothing.',
    maxRunning: 2,
    parameters: [
      {
        name: 'text',
        type: BasicType.STRING,
        maxLength: MAX_TEXT_BYTES,
        // Which text it was is enough for the audit log.
        masked: (text) => `sha256:${createHash('sha256').update(String(text)).digest('hex').slice(0, 16)}`,
        description: 'Whole lines of OpenMetrics; each sample has its time.',
      },
      {
        name: 'tenant',
        type: BasicType.STRING,
        optional: true,
        description: 'Whose; without it your own tenant, and for an admin also series that belong to none.',
      },
    ],
    prepare(args, { identity }) {
      const tenant = tenantOf(view, args, identity)
      const ofServer = !args.has('tenant') && mayChange(identity, SERVER)
      return async () => {
        // BUSY means that others are under way.
        const why = problem()
        if (why !== undefined) return failed(why)
        try {
          const counts = await take({ tenant, ofServer, text: String(args.get('text')) })
          const { stored = 0, tooOld = 0, ahead = 0, refused = 0 } = counts ?? {}
          return ok('', {
            type: BasicType.REC,
            value: Object.entries({ stored, too_old: tooOld, ahead, refused }).map(([name, count]) => {
              return { name, type: BasicType.UINT64, value: BigInt(count) } as const
            }),
          })
        } catch (error) {
          return failed((error as Error).message)
        }
      }
    },
  }
}

/** The tenant that is named, or the own one. Throws StatusError. A tenant of others does not exist for the caller. */
function tenantOf(view: Pick<Kit['peer']['view'], 'tenants'>, args: ControlArguments, identity: Identity): string {
  const tenant = String(args.get('tenant') ?? identity.tenant)
  if (view.tenants().includes(tenant) && mayChange(identity, tenant)) return tenant
  throw new StatusError('INVALID_ARGUMENT', `there is no tenant ${tenant}`)
}

/** What belongs to no tenant is read by all. */
function mayChange(identity: Identity, tenant: string): boolean {
  return tenant === SERVER ? identity.role === ADMIN_ROLE : maySee(identity, ownerOf(tenant))
}

/** Throws StatusError. */
function matchersOf(args: ControlArguments): HistoryMatcher[] {
  const [metric, labels] = [args.get('metric'), args.get('labels')]
  if (metric === undefined) {
    if (args.get('tenant') !== undefined && labels === undefined) return []
    throw new StatusError('INVALID_ARGUMENT', 'name a `metric`, or with `tenant` alone the tenant whose history goes')
  }
  const lines = labels === undefined ? [] : String(labels).split('\n')
  return [
    matcherOf('__name__', String(metric)),
    ...lines.map((line) => {
      const at = line.indexOf('=')
      if (at < 1) throw new StatusError('INVALID_ARGUMENT', `\`labels\`: ${line} is not name=text`)
      return labelMatcher(line.slice(0, at), line.slice(at + 1))
    }),
  ]
}
