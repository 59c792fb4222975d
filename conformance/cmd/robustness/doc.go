// Command robustness runs replicas of an API server under faults and checks what clients were told against etcd's own log.
//
//	robustness -minutes 60                           faults by chance for an hour
//	robustness -seed 4711 -runs 1                    the schedule of one seed
//	robustness -members 3 -faults stop-leader,cut    some faults only
//	robustness -engine sqlite -minutes 10            on kine in front of SQLite, where violations are expected
//	robustness -directed all -runs 20                each suspicion, 20 times
//	robustness -availability                         how soon replicas answer again after a fault
//
// It ends with a line of counts, and with code 1 if there was a violation.
package main
