/** `dry_run_argv`: a dry run is a program of its own, whose output is its result and what whoever approves is shown. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { done } from '../../../../support/administration.ts'
import { args, command, status, str, type } from '../../../../support/bytes.ts'
import { execTables } from '../../../../support/exec-tables.ts'
import { TestProducer } from '../../../../support/producer.ts'
import { decoded } from '../../../../support/records.ts'
import type { Seat } from '../../../../support/seat.ts'

describe('a program with a dry run of its own', () => {
  const PROGRAM = `
[[exec]]
name = "exec.disk"
argv = ["sh", "-c", "exit 1", "sh", "{what}"]
dry_run_argv = ["echo", "would free {what}"]
[[exec.parameter]]
name = "what"
[[exec]]
name = "exec.wrong"
argv = ["echo", "{what}"]
dry_run_argv = ["sh", "-c", "echo no >&2; exit 3"]
[[exec.parameter]]
name = "what"
default = "x"
`
  const HELD = '[[exec]]\nname = "exec.held"\nargv = ["true"]\ndry_run_argv = ["sleep", "60"]\n'
  let producer: TestProducer
  let op: Seat
  let lead: Seat
  beforeEach(async () => {
    producer = await TestProducer.start({ config: { exec: execTables(PROGRAM) } })
    for (const [name, role] of Object.entries({ root: 'admin', op: 'operator', lead: 'lead' })) {
      await producer.addUser(name, { role })
    }
    op = await producer.seat('op')
    lead = await producer.seat('lead')
    const rule = { role: 'operator', command: 'EXECUTE', object: 'exec.*', approval: 'lead' }
    await done(await producer.seat('root'), 'role.allow', rule)
  })
  afterEach(() => producer.stop())

  const what = ['what', type.string, str('logs')] as const
  const dry = ['dry_run', type.boolean, new Uint8Array([0, 0, 0, 1])] as const

  it('shows whoever asks for a dry run its output', async () => {
    expect(await op.execute('exec.disk', what, dry)).toMatchObject({
      outcome: 'dry-run',
      value: { exit: 0, stdout: 'would free logs\n' },
    })
    expect(await op.execute('exec.wrong', dry)).toMatchObject({ outcome: 'failed', value: { exit: 3, stderr: 'no\n' } })
  })

  it('shows it to whoever has to approve, and is not approved before', async () => {
    const id = await lead.collect('control.pending')
    await lead.ok((seq) => command.subscribe(seq, id))
    await op.ok((seq) => command.execute(seq, 'exec.disk', args(what)))
    const shown = decoded(await lead.value())
    expect(shown).toMatchObject({
      state: 'waiting',
      control: 'exec.disk',
      dry_run: { outcome: 'dry-run', value: { stdout: 'would free logs\n' } },
    })
    await done(lead, 'control.approve', { id: shown.id })
    expect(decoded(await op.value())).toMatchObject({ outcome: 'failed', detail: 'exit code 1' })
  })
  it('takes no place of the other one, and does not keep others from theirs', async () => {
    producer.config = { exec: execTables(HELD) }
    producer = await producer.restart()
    op = await producer.seat('op')
    const seqs = Array.from({ length: 9 }, () => op.send((seq) => command.execute(seq, 'exec.held', args(dry))))
    const answers: number[] = []
    for (const seq of seqs) answers.push((await op.response(seq)).status)
    // `max_running` is 1, and eight may be tried out all the same.
    expect(answers).toEqual([...Array.from({ length: 8 }, () => status.OK), status.BUSY])
    expect(await done(await producer.seat('root'), 'exec.held')).toMatchObject({ exit: 0 })
  })
})
