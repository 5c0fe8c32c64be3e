/** `notify.put`, `notify.remove` and `notify.list`: notifiers that users of a tenant put into force while the server runs. */
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field } from '../../../../protocol/monitor/value.ts'
import {
  type Control,
  type ControlArguments,
  failed,
  formatScope,
  HIDDEN,
  ok,
  RecordList,
  WholePattern,
} from '../../../kit/controls.ts'
import type { NotifierChange, PutNotifiers, PutRefusal, ShownNotifier } from './put-notifiers.ts'
import { withoutSecrets } from './tables.ts'

const { STRING, UINT64 } = BasicType
/** They are read in a few milliseconds, whatever they are. */
const MAX_CHARACTERS = 16_384
const MAX_SECRETS = 262_144
const MICROSECONDS = 1_000

export interface PutControlsOptions {
  readonly put: Pick<PutNotifiers, 'put' | 'changes' | 'remove' | 'shown'>
  /** Puts in force what has changed, and removes what a notifier that was removed has. Settles when that is done. */
  readonly follow: () => Promise<void>
  /** Settles when everything that was changed is stored. */
  readonly stored: () => Promise<void>
}

const NAME: Control['parameters'][number] = {
  name: 'name',
  type: STRING,
  maxLength: 64,
  pattern: new WholePattern('[A-Za-z0-9][A-Za-z0-9._-]*'),
  description: 'Its name.',
}

export function putControls({ put, follow, stored }: PutControlsOptions): Control[] {
  const putting: Control = {
    name: 'notify.put',
    description:
      'Puts notifiers of your tenant into force, all of them or none, each in the place of that with its name. They tell of alerts that you may read at that moment.',
    maxRunning: 1,
    parameters: [
      {
        name: 'notifiers',
        type: STRING,
        maxLength: MAX_CHARACTERS,
        masked: (text) => withoutSecrets(String(text)) || HIDDEN,
        description: 'Tables [[notify]] in TOML, as in the configuration, but without `tenant` and `role`.',
      },
      {
        name: 'secrets',
        type: STRING,
        optional: true,
        secret: true,
        maxLength: MAX_SECRETS,
        description:
          'The contents of the files that they name, as JSON: {"pager": {"token_file": "..."}}. No file of the server is read.',
      },
    ],
    prepare(args, { identity, credential }) {
      const { userId, tenant, name } = identity
      const who = {
        ...{ tenant, user: userId, author: name },
        token: credential.token ?? 0,
        scope: formatScope(credential.scope),
      }
      return async () => {
        const changes = await put.put(who, ...textsIn(args))
        if ('refused' in changes) return failed(changes.refused)
        await follow()
        await stored()
        return ok(changes.map(({ name }) => `${name} is in force`).join('\n'), listOf(changes.map(fieldsOfChange)))
      }
    },
    dryRun(args, { identity: { tenant } }) {
      return async () => {
        const changes: readonly NotifierChange[] | PutRefusal = await put.changes(tenant, ...textsIn(args))
        if ('refused' in changes) return failed(changes.refused)
        return { outcome: 'dry-run', detail: '', value: listOf(changes.map(fieldsOfChange)) }
      }
    },
  }

  const removing: Control = {
    name: 'notify.remove',
    description: 'Removes a notifier of your tenant that was put, with what waits in its channel and its log.',
    parameters: [NAME],
    prepare(args, { identity: { tenant } }) {
      const name = String(args.get('name'))
      return async () => {
        if (!put.remove(tenant, name)) return failed(`nobody has put a notifier ${name}`)
        await follow()
        await stored()
        return ok(`${name} is removed`)
      }
    },
  }

  const list: Control = {
    name: 'notify.list',
    description: 'Lists the notifiers of your tenant that were put, or gives the table of one, without what is secret.',
    parameters: [{ ...NAME, optional: true, description: 'Its name. If omitted: all are listed.' }],
    isRecorded: () => false,
    prepare(args, { identity: { tenant } }) {
      const name = args.get('name')
      return () => {
        const shown = put.shown(tenant)
        if (name === undefined) return ok('', listOf(shown.map(fieldsOf)))
        const found = shown.find(({ row }) => row.name === name)
        return found === undefined
          ? failed(`nobody has put a notifier ${name}`)
          : ok('', { type: STRING, value: found.row.settings })
      }
    },
  }

  return [putting, removing, list]
}

function textsIn(args: ControlArguments): [notifiers: string, secrets: string] {
  return [String(args.get('notifiers')), String(args.get('secrets') ?? '')]
}

function listOf(records: readonly Field[][]) {
  const list = new RecordList()
  for (const fields of records) if (!list.add(fields)) break
  return list.value()
}

const text = (name: string, value: string): Field => ({ name, type: STRING, value })

function fieldsOf({ row, url, problem }: ShownNotifier): Field[] {
  return [
    ...[text('name', row.name), text('url', url), text('author', row.author)],
    { name: 'put', type: UINT64, value: BigInt(Math.round(row.put * MICROSECONDS)) },
    text('problem', problem),
  ]
}

function fieldsOfChange({ name, change, keys }: NotifierChange): Field[] {
  return [text('name', name), text('change', change), text('keys', keys.join(' '))]
}
