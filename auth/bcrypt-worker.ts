/**
 * The thread in which passwords are hashed: a bcryptjs hash keeps a processor busy for about 0.1 s.
 * One job in, one answer with its id out; password.ts is the only one who talks to it.
 */
import { parentPort } from 'node:worker_threads'
import { compareSync, hashSync } from 'bcryptjs'

export type BcryptTask = { readonly password: string } & ({ readonly rounds: number } | { readonly hash: string })
export type BcryptJob = BcryptTask & { readonly id: number }
export type BcryptAnswer = { readonly id: number } & ({ readonly value: string | boolean } | { readonly error: string })

parentPort?.on('message', (job: BcryptJob) => {
  parentPort?.postMessage(answer(job))
})

function answer(job: BcryptJob): BcryptAnswer {
  try {
    const value = 'hash' in job ? compareSync(job.password, job.hash) : hashSync(job.password, job.rounds)
    return { id: job.id, value }
  } catch (error) {
    return { id: job.id, error: String(error) }
  }
}
