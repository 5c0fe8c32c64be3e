/** The thread that reads one rule file: `RuleReading` starts it by the name `#rules-worker`. */
import { parentPort, workerData } from 'node:worker_threads'
import { checkRuleFile } from '../rules/rule-file.ts'

parentPort?.postMessage(await checkRuleFile(workerData as string))
