/** `cinnabar cluster`: over the Monitoring Protocol at the leader, and at a real listener of a node on this machine. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { addCluster } from '../../../cli/commands/cluster.ts'
import type { ClientClock } from '../../../client/clock.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { clusterFields } from '../../../server/cluster/metric.ts'
import { listenStatus } from '../../../server/cluster/status-listener.ts'
import type { OpenListener } from '../../../server/edge/tcp.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { NO_TRAFFIC, TestCluster } from '../../support/test-cluster.ts'
import { fakeCli, rec, runCli, type Script, string } from '../fake-cli.ts'

/** The leader, which answers what a test makes of its cluster. */
const leaderOf =
  (cluster: TestCluster, outcome = 'ok'): Script =>
  ({ name, of }) => {
    if (of === 'producer.cluster') {
      return { followedBy: [{ answer: { type: BasicType.REC, value: clusterFields(cluster.state()) } }] }
    }
    if (name !== 'EXECUTE') return {}
    cluster.lead('n2')
    const result = rec(string('outcome', outcome), string('detail', 'n1 stops leading: another node takes over'))
    return { result: 5, followedBy: [{ answer: result, transaction: 1 }] }
  }

describe('asked over the Monitoring Protocol', () => {
  it('shows who leads, and how far each node is', async () => {
    const cluster = new TestCluster()
    cluster.change('n2', { lagMs: 12_000, obstacle: 'its disk is full' })
    const { code, out } = await runCli(['cluster'], leaderOf(cluster))
    expect(code).toBe(0)
    expect(out).toEqual([
      expect.stringMatching(/^cluster main: n1 leads since \d{4}-\d\d-\d\d .* \(\d+ d.*\), epoch 7$/),
      '',
      'NODE  ROLE       ADDRESS        SEQUENCE   LAG  VERSION',
      'n1    leader     10.0.0.1:7654   1284402     -  cinnabar/0.1.0',
      'n2    follower   10.0.0.2:7654   1284402  12 s  cinnabar/0.1.0  its disk is full',
      'n3    not heard  10.0.0.3:7654         -     -  -               it is stopped or cut off',
    ])
  })

  it('has the same in JSON', async () => {
    const { code, out } = await runCli(['cluster', '--json'], leaderOf(new TestCluster()))
    expect(code).toBe(0)
    expect(JSON.parse(out.join(''))).toMatchObject({
      name: 'main',
      leader: 'n1',
      epoch: 7,
      nodes: [{ name: 'n1', lag_ms: 0 }, { name: 'n2', lag_ms: 20 }, { role: 'not heard' }],
    })
  })

  it('says so where the server is in no cluster', async () => {
    const { code, err } = await runCli(['cluster'], () => ({ status: 'NO_SUCH_METRIC' }))
    expect([code, err.join()]).toEqual([1, expect.stringContaining('this server is not in a cluster')])
  })

  it('hands over', async () => {
    const { code, err, producer } = await runCli(['cluster', 'hand-over'], leaderOf(new TestCluster()))
    expect([code, err]).toEqual([0, ['n1 stops leading: another node takes over']])
    expect(producer.asked.map(({ of }) => of)).toContain('cluster.hand_over')
  })

  it('says why it was not handed over', async () => {
    const { code, err } = await runCli(['cluster', 'hand-over'], ({ name }) =>
      name === 'EXECUTE' ? { status: 'BUSY', detail: 'no other node could lead now (n2: not heard)' } : {},
    )
    expect(code).toBe(1)
    expect(err.join('\n')).toContain('no other node could lead now (n2: not heard)')
  })
})

describe('asked of the node on this machine', () => {
  let directory: string
  let cluster: TestCluster
  let listener: OpenListener
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'cinnabar-cluster-'))
    writeFileSync(join(directory, 'admin.secret'), 'of this machine\n', { mode: 0o600 })
    cluster = new TestCluster()
    listener = await listen()
  })
  afterEach(async () => {
    await listener.close()
    rmSync(directory, { recursive: true })
  })

  const listen = () =>
    listenStatus({
      address: { host: '127.0.0.1', port: 0 },
      dataDir: directory,
      cluster,
      health: { unready: () => undefined },
      openTo: () => [],
      traffic: () => NO_TRAFFIC,
      clock: new FakeClock(),
      log: createLogger('silent'),
    })
  const here = (argv: readonly string[], script: Script = () => ({ status: 'NO_SUCH_METRIC' })) =>
    runCli(argv, script, { env: { CINNABAR_PRODUCER_DATA_DIR: directory } })

  it('shows what that node sees, without a login', async () => {
    cluster.node = 'n2'
    const { code, out, producer } = await here(['cluster'])
    expect([code, producer.asked]).toEqual([0, []])
    expect(out.slice(2)).toEqual([
      'NODE  ROLE       ADDRESS        SEQUENCE    LAG  VERSION',
      'n1    leader     10.0.0.1:7654   1284402      -  cinnabar/0.1.0',
      'n2    follower   10.0.0.2:7654   1284402  20 ms  cinnabar/0.1.0',
      'n3    not heard  10.0.0.3:7654         -      -  -               it is stopped or cut off',
    ])
  })

  it('ends with exit code 1 if no node leads', async () => {
    cluster.lead(undefined)
    const { code, out, err } = await here(['cluster'])
    expect([code, out[0], err]).toEqual([1, 'cluster main: no node leads', []])
    const json = await here(['cluster', '--json'])
    expect([json.code, JSON.parse(json.out.join('')).leader]).toEqual([1, ''])
  })

  it('founds a log', async () => {
    cluster.lead(undefined)
    const { code, err } = await here(['cluster', 'found'])
    expect([code, err]).toEqual([0, ['the log of main begins anew with the database of this node']])
    expect(cluster.asked).toEqual(['found'])
  })

  it('says why no log was founded', async () => {
    cluster.refusal = new Error('n3 leads in epoch 8: nothing has to be founded')
    const { code, err } = await here(['cluster', 'found'])
    expect([code, err.join()]).toEqual([1, expect.stringContaining('n3 leads in epoch 8: nothing has to be founded')])
  })

  async function copy(each: () => void): Promise<readonly string[]> {
    const { cli, err } = fakeCli(() => ({}), { env: { CINNABAR_PRODUCER_DATA_DIR: directory } })
    const program = new Command().exitOverride()
    const watched = { ...cli, terminal: { ...cli.terminal, isWatched: true } }
    addCluster(
      program,
      watched,
      atOnce(async () => each()),
    )
    await program.parseAsync(['cluster', 'copy'], { from: 'user' })
    return err
  }
  const MIB = 2 ** 20

  it('has the database of the leader copied, and says how far it is and where the old one is', async () => {
    cluster.node = 'n2'
    let rounds = 0
    const notes = await copy(() => {
      const receivedBytes = ++rounds * 1.2 * MIB
      const phase = rounds < 4 ? 'copying' : 'done'
      cluster.copyState = {
        ...cluster.copyState,
        phase,
        receivedBytes,
        totalBytes: 5 * MIB,
        aside: '/data/set-aside-1',
      }
    })
    expect(notes).toEqual([
      'copying the database of n1',
      '20 % of 5.0 MiB',
      '40 % of 5.0 MiB',
      '70 % of 5.0 MiB',
      'this node has the database of n1 (5.0 MiB); the one that was here is in /data/set-aside-1',
    ])
    expect(cluster.asked).toEqual(['copy'])
  })

  it('says why a copy failed, or did not begin', async () => {
    const failing = copy(() => {
      cluster.copyState = { ...cluster.copyState, phase: 'failed', problem: 'the disk is full' }
    })
    await expect(failing).rejects.toThrow('the disk is full')
    cluster.refusal = new Error('this node leads: the others copy its database')
    const { code, err } = await here(['cluster', 'copy'])
    expect([code, err.join()]).toEqual([1, expect.stringContaining('this node leads')])
  })

  it('hands over where it leads only', async () => {
    cluster.lead('n2')
    const other = await here(['cluster', 'hand-over'])
    expect([other.code, other.err.join(), other.producer.asked]).toEqual([
      1,
      expect.stringContaining('n1 does not lead: run this command on n2'),
      [],
    ])
    cluster.lead(undefined)
    const nobody = await here(['cluster', 'hand-over'])
    expect([nobody.code, nobody.err.join()]).toEqual([1, expect.stringContaining('no node leads, so there is nothing')])
  })

  async function handOver(script: Script, clock: ClientClock): Promise<readonly string[]> {
    const { cli, err } = fakeCli(script, { env: { CINNABAR_PRODUCER_DATA_DIR: directory } })
    const program = new Command().exitOverride()
    addCluster(program, cli, clock)
    await program.parseAsync(['cluster', 'hand-over'], { from: 'user' })
    return err
  }
  /** Lets all time pass at once, after what is done each time. */
  const atOnce = (each: () => Promise<unknown> = async () => {}): ClientClock => ({
    monotonicMs: () => 0,
    setTimeout(callback) {
      void each().then(callback)
      return { cancel() {} }
    },
  })

  it('waits until another node leads, also if this one begins anew as a follower', async () => {
    const led: Script = (asked) => (asked.name === 'EXECUTE' ? { ...leaderOf(new TestCluster())(asked) } : {})
    let rounds = 0
    const notes = await handOver(
      led,
      atOnce(async () => {
        if (++rounds < 3) return
        await listener.close()
        listener = await listen()
        cluster.lead('n2')
      }),
    )
    expect(notes).toEqual(['n1 stops leading: another node takes over', 'n2 leads now'])
    expect(rounds).toBe(3)
  })

  it('does not wait for ever', async () => {
    const led: Script = (asked) => (asked.name === 'EXECUTE' ? { ...leaderOf(new TestCluster())(asked) } : {})
    await expect(handOver(led, atOnce())).rejects.toThrow(/this node still leads after 30 s/)
  })

  it('asks the leader instead if a server or a user is named, or if the node does not run', async () => {
    const script = leaderOf(new TestCluster())
    cluster.lead(undefined)
    const options = { env: { CINNABAR_PRODUCER_DATA_DIR: directory, CINNABAR_PASSWORD: 's3' } }
    expect((await runCli(['cluster', '--user', 'tc'], script, options)).out[0]).toContain('n1 leads')
    const pass = join(directory, 'node.pass')
    await listener.close()
    writeFileSync(pass, `secret\nhttp://127.0.0.1:${listener.address.port}\n`)
    for (const command of ['found', 'copy']) {
      const gone = await here(['cluster', command])
      const reason = expect.stringContaining('no node of a cluster runs on this machine')
      expect([gone.code, gone.err.join()]).toEqual([1, reason])
    }
    listener = await listen()
  })
})

test('nothing is founded where there is no node', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-cluster-'))
  const { code, err } = await runCli(['cluster', 'found'], undefined, {
    env: { CINNABAR_PRODUCER_DATA_DIR: directory },
  })
  expect([code, err.join()]).toEqual([1, expect.stringContaining(`with its data in ${directory}`)])
  rmSync(directory, { recursive: true })
})
