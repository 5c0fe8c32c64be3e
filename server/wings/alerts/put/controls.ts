/** `rules.put`, `rules.remove` and `rules.files`: rule files that users of a tenant put into force while the server runs. */
import { createHash } from 'node:crypto'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field } from '../../../../protocol/monitor/value.ts'
import { type Control, failed, formatScope, ok, RecordList, WholePattern } from '../../../kit/controls.ts'
import type { Clock } from '../../../kit/running.ts'
import type { RulesOfTenants, ShownFile } from '../tenants.ts'

const { STRING, UINT64 } = BasicType
const MAX_BYTES = 256 << 10
const MAX_NAME = 100

export interface RuleControlsOptions {
  readonly clock: Pick<Clock, 'wallMs'>
  /** Loads what has them, and waits until it knows what is stored. */
  readonly rules: () => Promise<Pick<RulesOfTenants, 'put' | 'remove' | 'filesOf'>>
  /** Counts a file of a tenant that was refused. */
  readonly refused: (tenant: string) => void
  /** Settles when everything that was changed is stored. */
  readonly stored: () => Promise<void>
}

const NAME: Control['parameters'][number] = {
  name: 'name',
  type: STRING,
  maxLength: MAX_NAME,
  pattern: new WholePattern('[A-Za-z0-9][A-Za-z0-9._-]*'),
  description: 'Its name, such as disk.yml.',
}

export function ruleControls({ clock, rules, refused, stored }: RuleControlsOptions): Control[] {
  const put: Control = {
    name: 'rules.put',
    description:
      'Puts a rule file of your tenant into force, in the place of that with its name. Its rules read what you may read whenever they are evaluated.',
    maxRunning: 1,
    parameters: [
      NAME,
      {
        name: 'rules',
        type: STRING,
        maxLength: MAX_BYTES,
        // Which of two texts it was is enough for the audit log.
        masked: (text) => `sha256:${digestOf(String(text))}`,
        description: 'The file, in YAML, as Prometheus has it.',
      },
    ],
    prepare(args, { identity, credential }) {
      const [name, text] = [String(args.get('name')), String(args.get('rules'))]
      const { userId, tenant, name: author } = identity
      const { token = 0 } = credential
      const scope = formatScope(credential.scope)
      return async () => {
        const row = { tenant, name, user: userId, author, token, scope, put: clock.wallMs(), rules: text }
        const file = await (await rules()).put(row)
        if ('refused' in file) {
          refused(tenant)
          return failed(file.refused)
        }
        await stored()
        return ok(`${name} is in force: ${counted(file.groups, 'group')}, ${counted(file.rules, 'rule')}`)
      }
    },
  }

  const remove: Control = {
    name: 'rules.remove',
    description: 'Removes a rule file of your tenant that was put into force. The alerts of its rules end.',
    parameters: [NAME],
    prepare(args, { identity }) {
      const name = String(args.get('name'))
      return async () => {
        if (!(await rules()).remove(identity.tenant, name)) return failed(`there is no file ${name}`)
        await stored()
        return ok(`${name} is removed`)
      }
    },
  }

  const list: Control = {
    name: 'rules.files',
    description: 'Lists the rule files of your tenant that were put into force, or gives the text of one.',
    parameters: [{ ...NAME, optional: true, description: `${NAME.description} If omitted: all are listed.` }],
    isRecorded: () => false,
    prepare(args, { identity }) {
      const name = args.get('name')
      return async () => {
        const files = (await rules()).filesOf(identity.tenant)
        if (name !== undefined) {
          const found = files.find(({ row }) => row.name === name)
          return found === undefined
            ? failed(`there is no file ${name}`)
            : ok('', { type: STRING, value: found.row.rules })
        }
        const list = new RecordList()
        for (const file of files) if (!list.add(fieldsOf(file))) break
        return ok('', list.value())
      }
    },
  }

  return [put, remove, list]
}

function fieldsOf({ row, groups, rules, bytes, problem = '' }: ShownFile): Field[] {
  const text = (name: string, value: string): Field => ({ name, type: STRING, value })
  const number = (name: string, value: number): Field => ({ name, type: UINT64, value: BigInt(Math.round(value)) })
  return [
    text('name', row.name),
    text('author', row.author),
    number('put', row.put * 1_000),
    number('bytes', bytes),
    number('groups', groups),
    number('rules', rules),
    text('digest', `sha256:${digestOf(row.rules)}`),
    text('problem', problem),
  ]
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
