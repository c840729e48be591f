# Fails unless the functions that LIBRARY defines are all named mercury_rt_*.
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
list(FILTER symbols EXCLUDE REGEX " mercury_rt_[a-z_]+$")
if(symbols)
  message(FATAL_ERROR "exported beside the ABI: ${symbols}")
endif()
